import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import jobs.clock


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0005_skypilot'),
    ]

    operations = [
        migrations.AddField(
            model_name='projectsecret',
            name='is_masked',
            field=models.BooleanField(default=True),
        ),
        migrations.AddField(
            model_name='projectsecret',
            name='updated_by',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='HandedSecrets',
            fields=[
                ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='handed_secrets', serialize=False, to='jobs.attempt')),
                ('sealed', models.BinaryField()),
                ('created_at', models.DateTimeField(default=jobs.clock.now, editable=False)),
                ('open_ends', models.JSONField(blank=True, default=dict)),
            ],
            options={
                'verbose_name_plural': 'handed secrets',
            },
        ),
    ]
