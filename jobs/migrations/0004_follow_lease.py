import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_one_clock'),
    ]

    operations = [
        migrations.CreateModel(
            name='FollowLease',
            fields=[
                ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='follow_lease', serialize=False, to='jobs.attempt')),
                ('owner', models.CharField(max_length=32)),
                ('expires_at', models.DateTimeField()),
            ],
        ),
    ]
