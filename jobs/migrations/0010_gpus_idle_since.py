from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0009_mesh_tree'),
    ]

    operations = [
        migrations.AddField(
            model_name='hostmetrics',
            name='gpus_idle_since',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
